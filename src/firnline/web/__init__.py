"""The page: a plugin of Airflow that shows pipelines, and lets those act who may."""
