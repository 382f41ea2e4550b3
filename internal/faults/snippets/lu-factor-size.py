import mlx.core as mx

lu, _ = mx.linalg.lu_factor(mx.random.normal((256, 256)))
mx.eval(lu)
before = mx.get_active_memory()
twice = lu * 2
mx.eval(twice)
used = mx.get_active_memory() - before
assert used < 2 * twice.nbytes, f"an array of {twice.nbytes} bytes takes {used} bytes"
