"""Tests of `tritensor.sklearn`. A folder called `sklearn` would hide scikit-learn where Python starts in `tests`."""
