package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockFileOfTheRepository(t *testing.T) {
	l, err := readLock(repository, lockName)
	require.NoError(t, err)
	for _, pair := range l.Pairs {
		for _, platform := range []struct{ backend, os, arch, first string }{
			{"cpu", "linux", "amd64", "mlx-cpu"},
			{"cpu", "linux", "arm64", "mlx-cpu"},
			{"cuda13", "linux", "amd64", "mlx-cuda-13"},
			{"cuda12", "linux", "amd64", "mlx-cuda-12"},
			{"metal", "darwin", "arm64", "mlx-metal"},
		} {
			wheels := pair.wheelsFor(platform.backend, platform.os, platform.arch)
			require.NotEmpty(t, wheels, "%s: %s", &pair, platform)
			require.Equal(t, platform.first, wheels[0].Package)
			require.Equal(t, pair.MLX.Version, wheels[0].Version)
		}
		require.Empty(t, pair.wheelsFor("metal", "linux", "amd64"))
		for _, name := range pair.Rules {
			rules, err := readRules(repository, patches+"/"+name)
			require.NoError(t, err)
			require.NotEmpty(t, rules, name)
		}
	}
}

// The tests of CUDA kernels use packages of the default pair.
func TestPackagesOfNVRTC(t *testing.T) {
	l, err := readLock(repository, lockName)
	require.NoError(t, err)
	pair, err := l.pair("")
	require.NoError(t, err)
	text, err := os.ReadFile("../../tools/nvrtc/requirements.txt")
	require.NoError(t, err)
	var locked []string
	for _, w := range pair.wheelsFor("cuda13", "linux", "amd64") {
		locked = append(locked, fmt.Sprintf("%s==%s --hash=sha256:%s", w.Package, w.Version, w.SHA256))
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	require.Len(t, lines, 2)
	require.Subset(t, locked, lines)
}

func TestParseLockRefuses(t *testing.T) {
	good, err := fs.ReadFile(repository, lockName)
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, want string }{
		"misspelt field": {`"sha256"`, `"sha265"`, "unknown field"},
		"short hash":     {`"sha256": "0e0a`, `"sha256": "0e`, "64 hexadecimal digits"},
		"upper case":     {`"sha256": "0e0a`, `"sha256": "0E0A`, "64 hexadecimal digits"},
		"no size":        {`"size": 10486971`, `"size": 0`, "has no size"},
		"path as name":   {`"file": "mlx_cpu`, `"file": "../mlx_cpu`, "not a plain name"},
		"no licence":     {`"license": "LicenseRef-NVIDIA-Proprietary"`, `"license": ""`, "lacks a field"},
		"short commit":   {`"commit": "a341b492`, `"commit": "a341`, "40 hexadecimal digits"},
		"path as rules":  {`"rules.json"`, `"../rules.json"`, "not a plain name"},
		"no default":     {`"default": "0`, `"default": "9`, "as tested"},
		"not JSON":       {`{`, `[`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := bytes.Replace(good, []byte(c.old), []byte(c.new), 1)
			require.NotEqual(t, good, bad)
			_, err := parseLock(bad)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = parseLock(append(bytes.Clone(good), good...))
	require.ErrorContains(t, err, "after the end")
}

func TestPair(t *testing.T) {
	l := &lockFile{Default: "0.32.2", Pairs: make([]pair, 2)}
	l.Pairs[0].MLX.Version, l.Pairs[1].MLX.Version = "0.32.4", "0.32.2"
	p, err := l.pair("")
	require.NoError(t, err)
	require.Same(t, &l.Pairs[1], p)
	p, err = l.pair("0.32.4")
	require.NoError(t, err)
	require.Same(t, &l.Pairs[0], p)
	_, err = l.pair("0.32.3")
	require.EqualError(t, err, "MLX 0.32.3 is not in the lock file: choose one of 0.32.4, 0.32.2 with --mlx or MLXGRAD_MLX")
}

// No file may name the host of a package registry: the user chooses it in the settings of pip and cargo.
func TestLockFileNamesNoRegistry(t *testing.T) {
	data, err := fs.ReadFile(repository, lockName)
	require.NoError(t, err)
	var doc any
	require.NoError(t, json.Unmarshal(data, &doc))
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case string:
			if strings.Contains(v, "://") {
				require.Regexp(t, "^https://github.com/(ml-explore|mlxgrad)/", v)
			}
		}
	}
	walk(doc)
}
