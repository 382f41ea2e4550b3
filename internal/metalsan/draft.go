package metalsan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
)

// draft prints a launch description for each kernel of the files. It returns cli.ErrFailed if a file does not load.
func (c *Command) draft(ctx context.Context, s cli.Streams) error {
	failed := false
	for _, name := range c.Files {
		files, err := newShaderFiles(name, c.Include)
		var lib *sanitizer.Library
		if filepath.Ext(name) == ".py" {
			err = errors.New("drafts are for shader files")
		} else if err == nil {
			lib, err = sanitizer.LoadNative(ctx, files, name, c.options())
		}
		if err != nil {
			failed = true
			for _, problem := range problemsOf(err, name, 1) {
				fmt.Fprint(s.Err, problem)
			}
			continue
		}
		for _, draft := range lib.Drafts() {
			fmt.Fprintln(s.Out, draft)
		}
		for _, kernel := range lib.Names() {
			if err := lib.Problem(kernel); err != nil {
				fmt.Fprintf(s.Err, "unsupported: %s: %v\n", kernel, err)
			}
		}
	}
	if failed {
		return cli.ErrFailed
	}
	return nil
}
