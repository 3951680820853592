"""Runs a branch of the AMPLab pipeline when it is triggered, with the branch's name as its parameter."""

from firnline.airflow import branch_dag

dag = branch_dag("amplab")
