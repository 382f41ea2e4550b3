package setup

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// publish makes a module proxy in a folder and returns the folder. The proxy's version v0.0.1 has the files of this
// repository that git does not ignore. A server has that version's release of the libraries that are installed here.
func publish(t *testing.T, repository string) (proxy string) {
	t.Helper()
	git := skip.Program(t, skip.Git)
	tree, release, proxy := t.TempDir(), t.TempDir(), t.TempDir()
	list := exec.Command(git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = repository
	names, err := list.Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(repository, name)); err == nil { // a removal may not be committed yet
			require.NoError(t, copyTree(filepath.Join(repository, name), filepath.Join(tree, name)))
		}
	}

	s, err := newSetup(filepath.Join(tree, "third_party", "mlx-c"), os.DirFS(tree), nil)
	require.NoError(t, err)
	// The installation may have another version than the default.
	installed, err := readManifest(filepath.Join(repository, "third_party/mlx-c/install"))
	require.NoError(t, err)
	s.lock.Default = installed.MLX
	require.NoError(t, s.choose(choice{}))
	hash, err := s.sourcesHash()
	require.NoError(t, err)
	a := prebuiltArchive{OS: runtime.GOOS, Arch: runtime.GOARCH, File: "libraries.tar.gz"}
	archive := filepath.Join(release, a.File)
	require.NoError(t,
		writeArchive(archive, prebuiltFolder, filepath.Join(repository, "third_party/mlx-c/install"), "lib", "include"))
	a.Size, a.SHA256 = sizeAndHash(t, archive)
	server := httptest.NewServer(http.FileServer(http.Dir(release)))
	t.Cleanup(server.Close)
	s.pair.Prebuilt = &lockPrebuilt{URL: server.URL, Sources: hash, Archives: []prebuiltArchive{a}}
	text, err := json.Marshal(s.lock)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(tree, lockName), text, 0o644))

	m := module.Version{Path: "github.com/mlxgrad/mlxgrad", Version: "v0.0.1"}
	dir := filepath.Join(proxy, m.Path, "@v")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	f, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, zip.CreateFromDir(f, m, tree))
	gomod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"list": m.Version + "\n", m.Version + ".mod": string(gomod), m.Version + ".info": `{"Version":"v0.0.1"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return proxy
}

var (
	example  = regexp.MustCompile("(?s)```go\n(package main.*?)```")
	commands = regexp.MustCompile("(?s)```sh\n(go get .*?)```")
	prints   = regexp.MustCompile("(?s)prints\n\n```text\n(.*?)```")
)

// A stranger has Go, a C compiler and pip, and nothing else: empty caches, an empty home, and a module in the folder work.
// The module mlxgrad comes from a proxy, since it is not published yet; the wheel of MLX from this checkout's downloads.
type stranger struct {
	t          *testing.T
	home, work string
	env        []string
	transcript strings.Builder // commands and their output
	repository string
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	repository, err := filepath.Abs("../..")
	require.NoError(t, err)
	proxy := publish(t, repository)
	dir := t.TempDir()
	s := &stranger{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "example"), repository: repository}
	bin := filepath.Join(dir, "bin")
	for _, folder := range []string{s.home, s.work, bin} {
		require.NoError(t, os.Mkdir(folder, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, "pip"), []byte(`#!/bin/sh
[ "$1" = --version ] && exit 0
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
cp "`+repository+`/third_party/mlx-c/downloads/"*.whl "$dest"
`), 0o755))
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	s.env = []string{
		"HOME=" + s.home, "PATH=" + bin + ":" + os.Getenv("PATH"),
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"),
		"GOSUMDB=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
	}
	return s
}

func (s *stranger) sh(script string) (string, error) {
	s.t.Helper()
	start := time.Now()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = s.work, s.env
	out, err := cmd.CombinedOutput()
	s.t.Logf("%.1f s: %s", time.Since(start).Seconds(), script)
	fmt.Fprintf(&s.transcript, "$ %s\n%s", script, out)
	return string(out), err
}

func (s *stranger) must(script string) string {
	s.t.Helper()
	out, err := s.sh(script)
	require.NoError(s.t, err, "%s: %s", script, out)
	return out
}

func (s *stranger) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o644))
}

// readme returns the program of the README, its output, and its three commands: get, set up, run.
func (s *stranger) readme() (program, output string, lines []string) {
	s.t.Helper()
	readme, err := os.ReadFile(filepath.Join(s.repository, "README.md"))
	require.NoError(s.t, err)
	lines = strings.Split(strings.TrimSpace(string(commands.FindSubmatch(readme)[1])), "\n")
	require.Len(s.t, lines, 3, "get, set up, run")
	return string(example.FindSubmatch(readme)[1]), string(prints.FindSubmatch(readme)[1]), lines
}

// The first screen of the README works for a stranger.
func TestInstallationFromTheModuleProxy(t *testing.T) {
	long.Only(t, "compiles Go's standard library and everything else with empty caches")
	s := newStranger(t)
	must, home := s.must, s.home
	program, want, lines := s.readme()
	s.write("main.go", program)
	must("go mod init example")
	must(lines[0])

	// Before set-up the program builds, and its first operation names the command.
	must("go build -o program .")
	out := must("./program")
	const setup = "go run github.com/mlxgrad/mlxgrad/cmd/mlxgrad@v0.0.1 setup"
	require.Contains(t, out, "MLX is not set up, there is no ")
	require.Contains(t, out, "run "+setup)

	out = must(lines[1])
	require.Contains(t, out, "downloading libmlxc and libmlxg")
	require.NotContains(t, out, "compiling")
	require.Regexp(t, `MLX [0-9.]+ is ready on this machine's `, out)
	require.Equal(t, want, must("./program 2>/dev/null"), "without another build")
	require.Equal(t, want, must(lines[2]+" 2>/dev/null"))
	must("touch main.go; go build -o program .")

	// A damaged installation is an error that names the command, which repairs it.
	for damage, message := range map[string]string{
		"printf x >%s/lib/libmlxg.so":                  "MLX cannot be loaded: ",
		"rm %s/mlx/lib/libmlx.so":                      "MLX cannot be loaded: libmlx.so: ",
		"cp %[1]s/lib/libmlxc.so %[1]s/lib/libmlxg.so": "is of another version of mlxgrad than this program",
	} {
		installs, err := filepath.Glob(filepath.Join(home, ".local/share/mlxgrad/*/install"))
		require.NoError(t, err)
		require.Len(t, installs, 1)
		must(strings.NewReplacer("%s", installs[0], "%[1]s", installs[0]).Replace(damage))
		out := must("./program")
		require.Contains(t, out, message)
		require.Contains(t, out, setup)
		must(setup)
		require.Equal(t, want, must("./program 2>/dev/null"))
	}

	must(setup + " --uninstall")
	require.NoDirExists(t, filepath.Join(home, ".local/share/mlxgrad"))
}
