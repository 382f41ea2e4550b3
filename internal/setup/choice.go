package setup

import (
	"cmp"
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
	MLX        string `json:"mlx,omitempty"` // a version; empty: the lock file's default, or the one in MLXDir
	MLXDir     string `json:"mlx_dir,omitempty"`
	MLXCSource string `json:"mlx_c_source,omitempty"`
	ASan       bool   `json:"asan,omitempty"`
}

var backends = []string{"cpu", "cuda13", "cuda12", "metal"}

// parse reads the choice and the folder of --offline from flags and, for missing flags, from the environment. The rest
// comes from the installed choice, so that "test" after "setup --backend cuda13" stays on CUDA.
func (s *setup) parse(args []string, getenv func(string) string, installed *manifest) (err error) {
	c := choice{
		Backend:    getenv("MLXGRAD_BACKEND"),
		MLX:        getenv("MLXGRAD_MLX"),
		MLXDir:     getenv("MLX_DIR"),
		MLXCSource: getenv("MLX_C_SOURCE"),
	}
	fs := flag.NewFlagSet("setup", flag.ContinueOnError)
	fs.SetOutput(new(strings.Builder)) // the error and build.sh help replace its output
	fs.StringVar(&c.Backend, "backend", c.Backend, "")
	fs.StringVar(&c.MLX, "mlx", c.MLX, "")
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
	if installed != nil {
		c = c.over(installed.Choice)
	}
	c = c.withoutDefault()
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

// over completes c by the installed choice, former. If c sets nothing but ASan, former stays as it is. Otherwise c
// inherits the backend and, unless c sets MLXDir, the version of MLX. It does not inherit MLXDir and MLXCSource: any
// explicit choice returns to the pinned MLX and mlx-c.
func (c choice) over(former choice) choice {
	if c == (choice{ASan: c.ASan}) {
		former.ASan = former.ASan || c.ASan
		return former
	}
	c.Backend = cmp.Or(c.Backend, former.Backend)
	if c.MLXDir == "" {
		c.MLX = cmp.Or(c.MLX, former.MLX)
	}
	return c
}

// withoutDefault replaces the version "default" by "". It is called after over, in which "default" overrides the
// installed version.
func (c choice) withoutDefault() choice {
	if c.MLX == "default" {
		c.MLX = ""
	}
	return c
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
	version := c.MLX
	if c.MLXDir != "" {
		if c.MLX != "" {
			return failf("choose one of them", "--mlx %s and --mlx-dir %s are two choices of MLX", c.MLX, c.MLXDir)
		}
		if version, err = mlxVersionOf(c.MLXDir); err != nil {
			return err
		}
	}
	if s.pair, err = s.lock.pair(version); err != nil {
		return err
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
