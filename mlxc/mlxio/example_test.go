package mlxio_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

func ExampleSaveSafetensors() {
	dir, err := os.MkdirTemp("", "mlxc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	w := mlxc.FromSlice([]float32{1, 2, 3})
	fmt.Println(mlxio.SaveSafetensors(path, map[string]*mlxc.Array{"layer.weight": w}, map[string]string{"step": "7"}))
	arrays, metadata, err := mlxio.LoadSafetensors(path)
	fmt.Println(arrays["layer.weight"], metadata["step"], err)
	// Output:
	// <nil>
	// array([1, 2, 3], dtype=float32) 7 <nil>
}

// A file of an fs.FS, such as an embed.FS, is a reader.
func ExampleReadNPY() {
	var b bytes.Buffer
	if err := mlxio.WriteNPY(&b, mlxc.Arange(mlxc.Int32, 0, 6, 1).Reshape(2, 3)); err != nil {
		panic(err)
	}
	fsys := fstest.MapFS{"data/x.npy": {Data: b.Bytes()}}
	f, err := fsys.Open("data/x.npy")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	a, err := mlxio.ReadNPY(f)
	fmt.Println(a.Shape(), a.Sum(), err)
	// Output: [2 3] array(15, dtype=int32) <nil>
}

func ExampleWriteGGUF() {
	var b bytes.Buffer
	arrays := map[string]*mlxc.Array{"blk.0.weight": mlxc.Ones(mlxc.BFloat16, 2, 2)}
	metadata := map[string]any{"general.architecture": "tiny", "tiny.block_count": uint32(1)}
	fmt.Println(mlxio.WriteGGUF(&b, arrays, metadata))
	arrays, metadata, err := mlxio.ReadGGUF(&b)
	fmt.Println(arrays["blk.0.weight"].DType(), metadata["tiny.block_count"], err)
	// Output:
	// <nil>
	// bfloat16 1 <nil>
}
