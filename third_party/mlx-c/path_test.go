package main

import (
	gobuild "go/build"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path is refused if the go command refuses it, or the linker or the loader takes it for
// another one.
func TestPathsThatAreRefused(t *testing.T) {
	goCommand := gobuild.Default
	goCommand.CgoEnabled = true
	for c := byte(1); c < 0x80; c++ {
		if c == '/' {
			continue
		}
		dir := filepath.Join(t.TempDir(), "a"+string(rune(c))+"b")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\n// #cgo CFLAGS: -I${SRCDIR}/include\nimport \"C\"\n"), 0o644))
		_, err := goCommand.ImportDir(dir, 0)
		refused := err != nil || c == ',' || c == ':'
		require.Equal(t, refused, checkPath(dir) != nil, "%q: %v", c, err)
	}
	for path, refused := range map[string]bool{
		"/home/é ü/a": false, "/a$b/$x/$": false, "/~a/@b/-c/=d": false,
		"/$ORIGIN/a": true, "/a$LIB": true, "/$PLATFORM": true,
	} {
		require.Equal(t, refused, checkPath(path) != nil, path)
	}
}

// Nothing is brought to a checkout that go build could not use.
func TestCheckoutInABadPath(t *testing.T) {
	w := newWorld(t)
	bad := filepath.Join(filepath.Dir(w.bin), "it's", "a,b", "mlx-c")
	require.NoError(t, os.MkdirAll(filepath.Dir(bad), 0o755))
	require.NoError(t, os.Rename(w.root, bad))
	w.root = bad
	w.fails(`has "' ,", with which go build cannot name the libraries: move the checkout to a path of letters, digits, spaces and`)
	require.NoDirExists(t, filepath.Join(w.root, "build"))
}
