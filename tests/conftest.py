"""Hypothesis for a shared machine: no clock decides whether a property holds."""

from hypothesis import HealthCheck, settings

settings.register_profile("firnline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("firnline")
