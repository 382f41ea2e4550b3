// Command mlx-c is the part of build.sh that is written in Go. It sets up MLX in the folder that its first
// argument names, this one; the usage is in build.sh.
package main

import (
	"os"

	"github.com/mlxgrad/mlxgrad/internal/setup"
)

func main() {
	os.Exit(setup.Main(os.Args[1:], os.Stderr))
}
