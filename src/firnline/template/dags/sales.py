"""The pipeline of include/pipelines/sales.py, one DAG run per epoch."""

from firnline.airflow import pipeline_dag

dag = pipeline_dag("sales")
