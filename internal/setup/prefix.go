package setup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// installTo copies the whole installation to lib/mlxgrad below the prefix of the flags, for programs outside this
// repository. The copy has the same layout, since the libraries find each other by relative paths. It can be moved.
func (s *setup) installTo(_ context.Context, m *manifest, args []string) error {
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	flags.SetOutput(new(strings.Builder)) // the error and build.sh help replace its output
	prefix := flags.String("prefix", "", "")
	err := flags.Parse(args)
	switch {
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("install does not take %q", flags.Arg(0))
	case err == nil && *prefix == "":
		err = errors.New("install needs a folder, --prefix DIR")
	}
	if err != nil {
		return failf("see ./build.sh help", "%v", err)
	}
	if m == nil {
		return failf("run ./build.sh install instead", "there is no installation to copy")
	}
	if *prefix, err = filepath.Abs(*prefix); err != nil {
		return err
	}
	if err := s.outside(*prefix); err != nil {
		return err
	}
	err = unwritable(*prefix, s.copyTo(filepath.Join(*prefix, "lib")))
	if err == nil {
		s.say("MLX is in %s/lib/mlxgrad: set MLXGRAD_LIB=%[1]s/lib/mlxgrad/lib for programs that are built elsewhere",
			*prefix)
	}
	return err
}

// unwritable returns a failure for a folder of the user that cannot be written.
func unwritable(dir string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if isDiskFull(err) || !errors.As(err, &path) && !errors.As(err, &link) {
		return err
	}
	return failf("choose a folder that you can write to", "%s cannot be written (%v)", dir, err)
}

// outside returns an error if the target is inside the installation, where a copy would not terminate.
func (s *setup) outside(target string) error {
	if rel, err := filepath.Rel(s.path("install"), target); err == nil && filepath.IsLocal(rel) {
		return failf("choose another folder", "%s lies in the folder that is copied", target)
	}
	return nil
}

func (s *setup) copyTo(lib string) error {
	target := filepath.Join(lib, "mlxgrad")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		return err
	}
	if err := recoverDir(target); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(lib, "mlxgrad.tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage) // nothing is left of it after a success
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(stage, os.DirFS(s.path("install"))); err != nil {
		return err
	}
	return replaceDir(stage, target)
}
