"""Keeps all logs of the project small, once an hour: merges layers, and removes what nothing needs any more."""

from firnline.airflow import maintenance_dag

dag = maintenance_dag()
