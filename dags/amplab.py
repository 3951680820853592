"""The AMPLab pipeline, one DAG run per epoch. Stages are in include/pipelines/amplab.py; Airflow is told nothing else."""

from firnline.airflow import pipeline_dag

dag = pipeline_dag("amplab")
