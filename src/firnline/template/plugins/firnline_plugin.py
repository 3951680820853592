"""The page of the project's pipelines, in Airflow's navigation, on each DAG and on each of its runs."""

from firnline.web.plugin import page_plugin

plugin = page_plugin()
