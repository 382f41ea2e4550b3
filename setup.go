// Package mlxgrad installs the libraries that the other packages of this module load at run time: Apple's MLX, its C
// interface mlx-c, and libmlxg, the C++ part of this module.
//
// Most programs rely on the command, which is run once per user and machine:
//
//	go run github.com/mlxgrad/mlxgrad/cmd/mlxgrad@latest setup
//
// A program that installs MLX at its first start calls [Setup].
//
// Packages: mlxc binds MLX, ops has differentiable operations with gradients of this project, customkernels runs
// Metal kernels on MLX arrays, compare checks gradients, mlxc/tree and mlxc/optim train.
package mlxgrad

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/internal/library"
	"github.com/mlxgrad/mlxgrad/internal/setup"
)

// sources are the files that a set-up reads and compiles.
//
//go:embed third_party/mlx-c/lock.json third_party/mlx-c/patches
//go:embed mlxc/*.h mlxc/libmlxg/*.h mlxc/libmlxg/*.cpp customkernels/internal/executor/*.h customkernels/internal/metalstd/host/mlxg_*.h
var sources embed.FS

// SetupOptions are the choices of [Setup]. The zero value is a set-up for the platform's default device.
type SetupOptions struct {
	// MLX is a version of MLX that this version of the module knows; the error for another one lists them. "default" is
	// the newest that the module's tests run on. If MLX is empty, Setup keeps the installed version, or installs the
	// default.
	MLX string
	// Backend is cpu, cuda13 or cuda12 on Linux and metal on macOS. If it is empty, Setup keeps the installed backend, or
	// installs cpu on Linux and metal on macOS.
	Backend string
	// Offline is a folder with the files that are downloaded otherwise. An error names the missing files.
	Offline string
	// Progress is called for each step, by one goroutine at a time. It may be nil.
	Progress func(SetupProgress)
}

// SetupProgress is a step of a set-up, or the progress of a step. Message is the step, such as "downloading mlx-cpu
// 0.32.4". Done and Total count the bytes of a download or the files of a compilation; Total is 0 for other steps.
type SetupProgress = setup.Progress

// Setup installs MLX, mlx-c and libmlxg for this version of the module in a folder of the user, which it returns:
// below ~/Library/Application Support/mlxgrad on macOS, else below $XDG_DATA_HOME/mlxgrad, by default
// ~/.local/share/mlxgrad. It does nothing if they are installed.
//
// MLX is Apple's Python package, which pip or uv downloads; no Python is used at run time. A release of this module
// has the two other libraries compiled for Linux on amd64 and arm64 and for macOS on arm64. Without a release, Setup
// downloads the sources of mlx-c with cargo or git and compiles both, which takes a C++20 compiler and about half a
// minute on two cores. Every download is compared with its SHA-256.
//
// An interrupted set-up leaves the former installation unchanged, and the next one continues it. Concurrent set-ups, in
// one or several processes, run one after the other. MLX is loaded by its first use, so call Setup before that;
// [github.com/mlxgrad/mlxgrad/mlxc.Check] reports whether it loads. The text of an error is one line with a remedy.
func Setup(ctx context.Context, o SetupOptions) (folder string, err error) {
	folder, err = library.UserFolder()
	if err != nil {
		return "", fmt.Errorf("mlxgrad: set-up: %w", err)
	}
	folder = filepath.Join(folder, library.Interface)
	if err := setup.User(ctx, folder, sources, setup.Options(o)); err != nil {
		return "", fmt.Errorf("mlxgrad: set-up: %w", setup.Explain(err))
	}
	return filepath.Join(folder, "install"), nil
}

// Uninstall removes the installations of Setup for all versions of the module. It waits for running set-ups. Programs
// that have loaded MLX continue to run.
func Uninstall(ctx context.Context) error {
	folder, err := library.UserFolder()
	if err != nil {
		return fmt.Errorf("mlxgrad: uninstall: %w", err)
	}
	if err := setup.Uninstall(ctx, folder); err != nil {
		return fmt.Errorf("mlxgrad: uninstall: %w", setup.Explain(err))
	}
	return nil
}
