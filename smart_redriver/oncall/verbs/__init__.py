"""Carries out the verbs, one module for each verb or pair of opposites. `declarations` defines how to call them."""
