"""Copies what the project's pipelines published to their replicas, every five minutes."""

from firnline.airflow import replicate_dag

dag = replicate_dag()
