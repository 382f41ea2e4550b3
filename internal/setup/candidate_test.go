package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// releaseOnPip puts a release of MLX on the world's pip: MLX's package, and one that it requires.
func (w *world) releaseOnPip(version string) (own, extra wheel) {
	w.t.Helper()
	dir := filepath.Dir(w.bin)
	own, extra = w.lock.Pairs[0].MLX.Wheels[0], wheel{Package: "extra", Version: "1.0"}
	own.Version, own.File = version, "mlx_cpu-"+version+"-py3-none-any.whl"
	extra.File = "extra-1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
	var installs []any
	for _, p := range []*wheel{&own, &extra} {
		makeZip(w.t, filepath.Join(dir, p.File), entry{name: p.Package, text: p.Version})
		p.Size, p.SHA256 = sizeAndHash(w.t, filepath.Join(dir, p.File))
		installs = append(installs, map[string]any{
			"download_info": map[string]any{
				"url": "file:///elsewhere/" + p.File, "archive_info": map[string]any{"hashes": map[string]any{"sha256": p.SHA256}},
			},
			"metadata": map[string]any{"name": p.Package, "version": p.Version, "license": "BSD-3-Clause"},
		})
	}
	report, err := json.Marshal(map[string]any{"install": installs})
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "report.json"), report, 0o600))
	w.fake("pip", `
[ "$1" = --version ] && exit 0
while [ $# -gt 0 ]; do
  case $1 in
    --report) /bin/cp "$FAKES/report.json" "$2";;
    --constraint) /bin/cp "$2" "$FAKES/constraints";;
    --dest) dest=$2;;
  esac
  last=$1
  shift
done
echo "$last" >>"$FAKES/requirements"
if [ "$dest" ]; then /bin/cp "$FAKES"/*.whl "$dest"; fi`)
	return own, extra
}

func (w *world) workshop() *Workshop {
	w.t.Helper()
	workshop, err := OpenWorkshop(w.t.Context(), w.root, newPrinter(&w.log, "upgrade").print)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		require.NoError(w.t, workshop.Close())
		w.tidy()
	})
	return workshop
}

// A candidate has MLX's new wheel, the packages that it requires, and the pair's others, with sizes and hashes. Only
// Write changes the lock file.
func TestCandidate(t *testing.T) {
	w := newWorld(t)
	p := &w.lock.Pairs[0]
	kept := wheel{
		Backend: p.MLX.Wheels[0].Backend, OS: p.MLX.Wheels[0].OS, Arch: p.MLX.Wheels[0].Arch, Package: "kept", Version: "2",
		Platform: "any", File: "kept.whl", Size: 1, SHA256: p.MLX.Wheels[0].SHA256, License: "MIT",
	}
	p.MLX.Wheels = append(p.MLX.Wheels, kept)
	w.writeLock()
	own, extra := w.releaseOnPip("0.32.3")
	before := w.read("lock.json")
	workshop := w.workshop()

	newest, err := workshop.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0.32.3", newest)
	_, err = workshop.Known(newest)
	require.ErrorContains(t, err, "0.32.3")
	base, err := workshop.Known("")
	require.NoError(t, err)
	require.Equal(t, "0.32.2", base.Version())

	c, notes, err := workshop.Candidate(t.Context(), newest, base)
	require.NoError(t, err)
	require.Len(t, notes, 2)
	require.Contains(t, notes[0], "extra 1.0, the newest, is a new package; its license: BSD-3-Clause")
	require.Contains(t, notes[1], "MLX does not require kept 2, which is kept")
	extra.Backend, extra.OS, extra.Arch = own.Backend, own.OS, own.Arch
	extra.Platform, extra.License = "manylinux_2_17_x86_64", "BSD-3-Clause"
	require.Equal(t, []wheel{own, extra, kept}, c.pair.MLX.Wheels)
	require.Equal(t, base.Rules(), c.Rules())
	require.Equal(t, base.MLXC(), c.MLXC())
	dir := filepath.Dir(w.bin)
	constraints, err := os.ReadFile(filepath.Join(dir, "constraints"))
	require.NoError(t, err)
	require.Equal(t, "kept==2\n", string(constraints))

	require.Equal(t, before, w.read("lock.json"))
	require.NoError(t, workshop.Write(c))
	require.NoError(t, workshop.Write(c)) // replaces the entry
	l, err := parseLock([]byte(w.read("lock.json")))
	require.NoError(t, err)
	require.Len(t, l.Pairs, 2)
	require.Equal(t, "0.32.2", l.Default)
	require.Equal(t, c.pair, l.Pairs[1])
	require.False(t, l.Pairs[1].Tested)
}

// A version that pip does not have is an error that names it.
func TestCandidateUnknownToPip(t *testing.T) {
	w := newWorld(t)
	w.fake("pip", `
[ "$1" = --version ] && exit 0
echo "ERROR: No matching distribution found for mlx-cpu==9.9" >&2
exit 1`)
	workshop := w.workshop()
	base, err := workshop.Known("")
	require.NoError(t, err)
	_, _, err = workshop.Candidate(t.Context(), "9.9", base)
	require.ErrorContains(t, err, "pip has no mlx-cpu==9.9 for ")
	require.ErrorContains(t, err, "No matching distribution found")
}

// Rules that do not fit are errors of their own: the other rules apply, and the sources are unpacked.
func TestUnpackWithUnfitRules(t *testing.T) {
	w := newWorld(t)
	w.write("patches/rules.json", `[
  {"name": "none", "files": "mlx/c", "find": "nowhere", "replace": "", "count": 1},
  {"name": "all", "files": "mlx/c", "find": "mlx_error(e.what())", "replace": "fixed", "count": 652}
]`)
	workshop := w.workshop()
	c, err := workshop.Known("")
	require.NoError(t, err)
	unfit, err := workshop.Unpack(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, unfit, 1)
	require.ErrorContains(t, unfit[0], `"none" fits 0 places`)
	require.ErrorContains(t, unfit[0], "bring third_party/mlx-c/patches/rules.json up to date")
	dir, units := c.Sources()
	require.Len(t, units, 4)
	text, err := os.ReadFile(filepath.Join(dir, "mlx", "c", "ops.cpp"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "mlx_error")
	require.FileExists(t, filepath.Join(c.Include(), "mlx", "mlx.h"))
}

func TestPlatformTags(t *testing.T) {
	tags := platformTags(wheel{Platform: "manylinux_2_35_aarch64"})
	require.Equal(t, "manylinux_2_35_aarch64", tags[0])
	require.Contains(t, tags, "manylinux_2_17_aarch64")
	require.Contains(t, tags, "manylinux2014_aarch64")
	require.Equal(t, []string{"macosx_14_0_arm64"}, platformTags(wheel{Platform: "macosx_14_0_arm64"}))
	require.Equal(t, "manylinux_2_12_x86_64", platformOf("n-13.0-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl"))
	require.Equal(t, "macosx_14_0_arm64", platformOf("mlx_metal-0.32.2-py3-none-macosx_14_0_arm64.whl"))
}
