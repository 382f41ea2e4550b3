package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// versionCommand is "mlxgrad version".
type versionCommand struct{}

// Run prints one line a component.
func (versionCommand) Run(w io.Writer) error {
	_, err := fmt.Fprintf(w, "mlxgrad %s\nMLX %s\nmlx-c %s\n%s %s/%s\n",
		moduleVersion(), mlxc.Version(), mlxc.CVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// moduleVersion is the module's version as Go recorded it in the binary.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
