package customkernels

import (
	"strconv"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// keySize is the initial capacity of a key in bytes. It is enough for most programs.
const keySize = 128

// signature appends to key all that the generated source depends on: template arguments, dtypes, and the size
// classes of the inputs.
func (k *Kernel) signature(key []byte, l Launch, inputs []*mlxc.Array) []byte {
	for i := range k.parsed.Template {
		switch v := k.templateValue(l, i).(type) {
		case mlxc.DType:
			key = append(key, byte(v))
		case int:
			key = strconv.AppendInt(key, int64(v), 10)
		case bool:
			key = strconv.AppendBool(key, v)
		}
		key = append(key, ',')
	}
	for i, a := range inputs {
		class := k.sizeClass(i, a)
		key = append(key, byte(a.DType()), byte(len(class)))
		for _, n := range class {
			key = append(key, byte(n))
		}
	}
	for _, o := range l.Outputs {
		key = append(key, byte(o.DType))
	}
	return key
}

// sizeClass returns the representative shape of a's size class. MLX generates one declaration of input i for all shapes
// of a class.
func (k *Kernel) sizeClass(i int, a *mlxc.Array) []int {
	return k.loaded.SizeClass(i, a.NDim(), a.Size())
}

// getOrBuild returns the program with the key, or builds and stores it.
//
// It holds no lock while it builds. Building takes MLX's graph lock, and a caller inside a transform already holds that
// lock. With k.mu held, two goroutines could take the locks in opposite orders and deadlock. Concurrent builds of one
// program share the compilation in executor.Compile, or on CUDA in package nvrtc or MLX. Errors are not stored: the
// next call may find a compiler or free disk space.
func getOrBuild[P any](k *Kernel, programs map[string]*P, key []byte, build func() (*P, error)) (*P, error) {
	k.mu.Lock()
	p := programs[string(key)]
	k.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := build()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if first := programs[string(key)]; first != nil {
		return first, nil
	}
	programs[string(key)] = p
	return p, nil
}
