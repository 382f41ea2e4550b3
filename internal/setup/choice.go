package setup

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A choice is the configuration of an installation. The zero value is the platform's default.
type choice struct {
	Backend    string `json:"backend,omitempty"`
	MLXDir     string `json:"mlx_dir,omitempty"`
	MLXCSource string `json:"mlx_c_source,omitempty"`
	ASan       bool   `json:"asan,omitempty"`
}

var backends = []string{"cpu", "cuda13", "cuda12", "metal"}

// parse reads the choice and the folder of --offline from flags and, for missing flags, from the environment. If
// neither makes a choice, parse keeps the choice of the present installation, so that "test" after "setup --backend
// cuda13" stays on CUDA.
func (s *setup) parse(args []string, getenv func(string) string, installed *manifest) (err error) {
	c := choice{
		Backend:    getenv("MLXGRAD_BACKEND"),
		MLXDir:     getenv("MLX_DIR"),
		MLXCSource: getenv("MLX_C_SOURCE"),
	}
	fs := flag.NewFlagSet("setup", flag.ContinueOnError)
	fs.SetOutput(new(strings.Builder)) // the error and build.sh help replace its output
	fs.StringVar(&c.Backend, "backend", c.Backend, "")
	fs.StringVar(&c.MLXDir, "mlx-dir", c.MLXDir, "")
	fs.StringVar(&c.MLXCSource, "mlx-c-source", c.MLXCSource, "")
	fs.BoolVar(&c.ASan, "asan", false, "")
	fs.StringVar(&s.offline, "offline", "", "")
	if err := fs.Parse(args); err != nil {
		return failf("see ./build.sh help", "%v", err)
	}
	if fs.NArg() > 0 {
		return failf("see ./build.sh help", "setup does not take %q", fs.Arg(0))
	}
	if installed != nil && c == (choice{ASan: c.ASan}) {
		c, c.ASan = installed.Choice, c.ASan || installed.Choice.ASan
	}
	for _, p := range []*string{&c.MLXDir, &c.MLXCSource} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		if _, err := os.Stat(abs); err != nil {
			return failf("correct MLX_DIR or MLX_C_SOURCE, or go back to the pinned ones with ./build.sh setup --backend "+c.backend(), "%s does not exist", abs)
		}
		*p = abs
	}
	return s.choose(c)
}

// choose checks and stores a choice. It also checks the folder of --offline.
func (s *setup) choose(c choice) (err error) {
	if c.Backend != "" && !slices.Contains(backends, c.Backend) {
		return failf("choose one of "+strings.Join(backends, ", "), "there is no backend %q", c.Backend)
	}
	if s.offline != "" {
		if s.offline, err = filepath.Abs(s.offline); err != nil {
			return err
		}
		if info, err := os.Stat(s.offline); err != nil || !info.IsDir() {
			return failf("name the folder that has the downloads", "--offline: there is no folder %s", s.offline)
		}
	}
	s.choice = c
	return nil
}

// backend returns the chosen backend or the platform's default.
func (c choice) backend() string {
	switch {
	case c.Backend != "":
		return c.Backend
	case runtime.GOOS == "darwin":
		return "metal"
	default:
		return "cpu"
	}
}
