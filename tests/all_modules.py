"""Imports every module of the product for `coverage run`: tests are measured only after they have imported it."""

import importlib
import pkgutil

from framework_modules import FRAMEWORK_MODULES

import batonpass

for module in pkgutil.walk_packages(batonpass.__path__, "batonpass."):
    if not module.name.endswith(".__main__") and not module.name.startswith(FRAMEWORK_MODULES):
        importlib.import_module(module.name)
