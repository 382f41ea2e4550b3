import os, tempfile

import mlx.core as mx

path = os.path.join(tempfile.mkdtemp(), "x.npy")
mx.save(path, mx.ones(1000))
os.truncate(path, 200)
try:
    got = mx.load(path)
    mx.eval(got)
except RuntimeError:
    pass
else:
    raise AssertionError("no error")
