package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// versionCommand is "mlxgrad version".
type versionCommand struct{}

// Run prints one line for each component.
func (versionCommand) Run(w io.Writer) error {
	_, err := fmt.Fprintf(w, "mlxgrad %s\nMLX %s\nmlx-c %s\n%s %s/%s\n",
		metalsan.Version(), mlxc.Version(), mlxc.CVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
