"""Verifies all logs of the project once a day, and repairs what is lost."""

from firnline.airflow import repair_dag

dag = repair_dag()
