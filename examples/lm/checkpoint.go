package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// save writes the parameters and the optimizer's state to a safetensors file.
func (t training) save(file string) error {
	arrays, err := tree.ToMap(t)
	if err != nil {
		return err
	}
	return mlxio.SaveSafetensors(file, arrays, nil)
}

// resume returns the training that save wrote to the file. Without a file name, or if the file does not exist, it
// returns a new training.
func (c config) resume(file string) (training, error) {
	t, err := c.start()
	if err != nil || file == "" {
		return t, err
	}
	arrays, _, err := mlxio.LoadSafetensors(file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return training{}, err
	}
	loaded, err := tree.FromMap(t, arrays)
	if err != nil {
		return training{}, fmt.Errorf("%s does not fit the model: %w", file, err)
	}
	return loaded, tree.Eval(loaded)
}
