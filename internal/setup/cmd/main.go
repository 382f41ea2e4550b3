// Command cmd is the set-up program that build.sh builds and runs. Its first argument is the folder
// third_party/mlx-c of the checkout; build.sh documents the others.
package main

import (
	"os"

	"github.com/mlxgrad/mlxgrad/internal/setup"
)

func main() {
	os.Exit(setup.Main(os.Args[1:], os.Stderr))
}
