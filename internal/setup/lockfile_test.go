package setup

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockFileOfTheRepository(t *testing.T) {
	l, err := readLock(repository, lockName)
	require.NoError(t, err)
	for _, platform := range []struct{ backend, os, arch, first string }{
		{"cpu", "linux", "amd64", "mlx-cpu"},
		{"cpu", "linux", "arm64", "mlx-cpu"},
		{"cuda13", "linux", "amd64", "mlx-cuda-13"},
		{"cuda12", "linux", "amd64", "mlx-cuda-12"},
		{"metal", "darwin", "arm64", "mlx-metal"},
	} {
		wheels := l.wheelsFor(platform.backend, platform.os, platform.arch)
		require.NotEmpty(t, wheels, platform)
		require.Equal(t, platform.first, wheels[0].Package)
		require.Equal(t, l.MLX.Version, wheels[0].Version)
	}
	require.Empty(t, l.wheelsFor("metal", "linux", "amd64"))
}

func TestParseLockRefuses(t *testing.T) {
	good, err := fs.ReadFile(repository, lockName)
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, want string }{
		"misspelt field": {`"sha256"`, `"sha265"`, "unknown field"},
		"short hash":     {`"sha256": "fc5d`, `"sha256": "fc`, "64 hexadecimal digits"},
		"upper case":     {`"sha256": "fc5d`, `"sha256": "FC5D`, "64 hexadecimal digits"},
		"no size":        {`"size": 10388414`, `"size": 0`, "has no size"},
		"path as name":   {`"file": "mlx_cpu`, `"file": "../mlx_cpu`, "not a plain name"},
		"no licence":     {`"license": "LicenseRef-NVIDIA-Proprietary"`, `"license": ""`, "lacks a field"},
		"short commit":   {`"commit": "a341b492`, `"commit": "a341`, "40 hexadecimal digits"},
		"untested":       {`"tested": true`, `"tested": false`, "as tested"},
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

func TestCheckPair(t *testing.T) {
	l := &lockFile{Pairs: []pair{{MLXC: "0.7.0", MLX: "0.32.2", Tested: true}, {MLXC: "0.7.1", MLX: "0.32.2"}}}
	tested, err := l.checkPair("0.7.0", "0.32.2")
	require.NoError(t, err)
	require.True(t, tested)
	tested, err = l.checkPair("0.7.1", "0.32.2")
	require.NoError(t, err)
	require.False(t, tested)
	_, err = l.checkPair("0.7.0", "0.32.3")
	require.EqualError(t, err, "mlx-c 0.7.0 does not work with MLX 0.32.3: use one of: "+
		"mlx-c 0.7.0 with MLX 0.32.2; mlx-c 0.7.1 with MLX 0.32.2, or leave MLX_DIR and MLX_C_SOURCE unset")
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
