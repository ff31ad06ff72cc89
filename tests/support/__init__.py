"""What tests share: builders of small, real objects."""

import os

# Threads of a product of matrices wait for each other in a loop: beside other tests that takes more than the product.
# NumPy reads it when it is first imported, and commands that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
