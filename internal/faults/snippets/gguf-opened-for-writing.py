import os, tempfile

import mlx.core as mx

folder = tempfile.mkdtemp()
path = os.path.join(folder, "x.gguf")
mx.save_gguf(path, {"a": mx.ones(4)})
os.chmod(path, 0o444)
os.chmod(folder, 0o755)
if os.geteuid() == 0:
    os.seteuid(65534)  # root may write to every file
try:
    mx.load(path)
except RuntimeError as error:
    raise AssertionError(error)
