package mlxio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/savefile"
)

// saveFile replaces the file at path by the output of write. It writes to a FIFO, device or other special
// file as a stream, and does not replace it.
func saveFile(op, path string, write func(w io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = mlxc.NewError(op, fmt.Errorf("%s: %w", path, err))
		}
	}()
	buffered := func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	}
	if !savefile.IsSpecial(path) {
		return savefile.Replace(path, buffered)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(buffered(f), f.Close())
}

// writeElements evaluates an array and writes its elements in row-major order.
func writeElements(w io.Writer, a *mlxc.Array) error {
	data := make([]byte, a.NBytes())
	if err := core.Read(a, data); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// sortedNames returns the names in ascending order, so that equal arrays make equal files.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// evalNamed evaluates all arrays in one call. The error for an invalid array contains its name.
func evalNamed(arrays map[string]*mlxc.Array) error {
	all := make([]*mlxc.Array, 0, len(arrays))
	for _, name := range sortedNames(arrays) {
		a := arrays[name]
		if err := a.Err(); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		all = append(all, a)
	}
	return mlxc.Eval(all...)
}
