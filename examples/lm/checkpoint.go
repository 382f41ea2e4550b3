package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// save writes the parameters and the optimizer's state to a safetensors file. The file is replaced as a whole, so a
// killed process leaves the previous checkpoint. The metadata holds the settings that the arrays do not show. Of several
// processes, the first one writes the file.
func (c config) save(file string, t *trainer, text corpus) error {
	return c.onFirst(func() error { return c.write(file, t, text) })
}

func (c config) write(file string, t *trainer, text corpus) error {
	arrays, err := tree.ToMap(t.State)
	if err != nil {
		return err
	}
	return mlxio.SaveSafetensors(file, arrays, map[string]string{
		"letters": string(text.letters),
		"heads":   strconv.Itoa(c.heads),
	})
}

// resume sets the state of t to the checkpoint in the file. Without a file name, or if the file does not exist, it
// leaves t as it is. Of several processes, the first one reads the file and sends the state to the others.
func (c config) resume(file string, t *trainer) error {
	if err := c.onFirst(func() error { return read(file, t) }); err != nil || c.group == nil {
		return err
	}
	state, err := distributed.Broadcast(c.group, t.State)
	if err == nil {
		t.State = state
	}
	return err
}

func read(file string, t *trainer) error {
	if file == "" {
		return nil
	}
	arrays, _, err := mlxio.LoadSafetensors(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	loaded, err := tree.FromMap(t.State, arrays)
	if err != nil {
		return fmt.Errorf("%s does not fit the model: %w", file, err)
	}
	t.State = loaded
	return tree.Eval(loaded)
}
