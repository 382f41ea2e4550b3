package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Newest returns the newest version of MLX that pip finds.
func (w *Workshop) Newest(ctx context.Context) (string, error) {
	base, err := w.s.lock.pair("")
	if err != nil {
		return "", err
	}
	first := base.MLX.Wheels[0]
	wheels, err := w.s.resolve(ctx, first.Package, []wheel{first}, nil)
	if err != nil {
		return "", err
	}
	return wheels[0].Version, nil
}

// Candidate returns a new pair: a version of MLX with base's mlx-c and patch rules, for every backend of base. pip
// resolves the packages that MLX requires and keeps base's versions where MLX permits them. Candidate downloads wheels
// that base lacks, since pip does not print their sizes. notes lists the differences that a person must check.
func (w *Workshop) Candidate(ctx context.Context, version string, base *Candidate) (c *Candidate, notes []string, err error) {
	c = &Candidate{pair: pair{MLX: base.pair.MLX, MLXC: base.pair.MLXC, Rules: base.pair.Rules}}
	c.pair.MLX.Version, c.pair.MLX.Wheels = version, nil
	for _, group := range platforms(base.pair.MLX.Wheels) {
		own := group[0]
		wheels, err := w.s.resolve(ctx, own.Package+"=="+version, group, group[1:])
		if err != nil {
			return nil, nil, err
		}
		// MLX's own wheel is the first, as in the lock file, and the others are in the order of their names.
		key := func(w wheel) string { return strings.TrimPrefix(w.Package, own.Package) }
		slices.SortFunc(wheels, func(x, y wheel) int { return cmp.Compare(key(x), key(y)) })
		for i := range wheels {
			note, err := w.s.complete(ctx, &wheels[i], group)
			if err != nil {
				return nil, nil, err
			}
			if note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
		// A pair may have a package that MLX does not name, such as the headers for CUDA kernels.
		for _, old := range group {
			if !slices.ContainsFunc(wheels, func(n wheel) bool { return n.Package == old.Package }) {
				wheels = append(wheels, old)
				notes = append(notes, fmt.Sprintf("%s: MLX does not require %s %s, which is kept", own.Backend, old.Package, old.Version))
			}
		}
		c.pair.MLX.Wheels = append(c.pair.MLX.Wheels, wheels...)
	}
	return c, notes, nil
}

// platforms groups wheels by backend and platform.
func platforms(wheels []wheel) (groups [][]wheel) {
	for _, w := range wheels {
		i := slices.IndexFunc(groups, func(g []wheel) bool {
			return g[0].Backend == w.Backend && g[0].OS == w.OS && g[0].Arch == w.Arch
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// A pipReport is the part of pip's installation report that names wheels.
type pipReport struct {
	Install []struct {
		Download struct {
			URL     string `json:"url"`
			Archive struct {
				Hashes struct {
					SHA256 string `json:"sha256"`
				} `json:"hashes"`
			} `json:"archive_info"`
		} `json:"download_info"`
		Metadata struct {
			Name       string `json:"name"`
			Version    string `json:"version"`
			License    string `json:"license"`
			Expression string `json:"license_expression"`
		} `json:"metadata"`
	} `json:"install"`
}

// resolve returns the wheels of a requirement and of its dependencies, without sizes, for the platform of group. It
// chooses the versions of pinned if the requirements permit them, otherwise the newest.
func (s *setup) resolve(ctx context.Context, requirement string, group, pinned []wheel) ([]wheel, error) {
	pip, err := s.findPip(ctx)
	if err != nil {
		return nil, err
	}
	own := group[0]
	s.say("resolving %s for backend %s on %s/%s", requirement, own.Backend, own.OS, own.Arch)
	dir, err := os.MkdirTemp(s.tmp, "pip-")
	if err != nil {
		return nil, err
	}
	report, constraints := filepath.Join(dir, "report.json"), filepath.Join(dir, "constraints.txt")
	var text strings.Builder
	for _, w := range pinned {
		fmt.Fprintf(&text, "%s==%s\n", w.Package, w.Version)
	}
	if err := os.WriteFile(constraints, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	args := slices.Concat(pip, []string{
		"install", "--dry-run", "--ignore-installed", "--quiet", "--no-input", "--disable-pip-version-check",
		"--only-binary=:all:", "--target", filepath.Join(dir, "none"), "--report", report,
	})
	for _, tag := range platformTags(own) {
		args = append(args, "--platform", tag)
	}
	out, err := s.tool(ctx, nil, append(args, "--constraint", constraints, requirement)...)
	if err != nil && ctx.Err() == nil && len(pinned) > 0 && strings.Contains(out, "ResolutionImpossible") {
		s.say("note: %s does not permit the pinned versions of the packages that it requires", requirement)
		out, err = s.tool(ctx, nil, append(args, requirement)...)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failf("check the version and the network", "pip has no %s for %s/%s (%s)", requirement, own.OS, own.Arch,
			telling(out, err))
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var r pipReport
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("pip's report: %w", err)
	}
	var wheels []wheel
	for _, i := range r.Install {
		w := wheel{
			Backend: own.Backend, OS: own.OS, Arch: own.Arch, Package: i.Metadata.Name, Version: i.Metadata.Version,
			File: path.Base(i.Download.URL), SHA256: i.Download.Archive.Hashes.SHA256,
			License: cmp.Or(i.Metadata.Expression, i.Metadata.License),
		}
		w.Platform = platformOf(w.File)
		wheels = append(wheels, w)
	}
	if len(wheels) == 0 {
		return nil, fmt.Errorf("pip's report on %s has no package", requirement)
	}
	return wheels, nil
}

var manylinux = regexp.MustCompile(`^manylinux_2_(\d+)_(\w+)$`)

// platformTags returns the platform tags that are compatible with a machine that runs own, MLX's wheel. On macOS pip
// adds the older tags itself.
func platformTags(own wheel) []string {
	m := manylinux.FindStringSubmatch(own.Platform)
	if m == nil {
		return []string{own.Platform}
	}
	newest, _ := strconv.Atoi(m[1]) // digits, by the pattern
	var tags []string
	for glibc := newest; glibc >= 5; glibc-- {
		tags = append(tags, fmt.Sprintf("manylinux_2_%d_%s", glibc, m[2]))
	}
	return append(tags, "manylinux2014_"+m[2], "manylinux2010_"+m[2], "manylinux1_"+m[2])
}

// platformOf returns the last platform tag in a wheel's file name.
func platformOf(file string) string {
	tags := strings.TrimSuffix(file, ".whl")
	tags = tags[strings.LastIndex(tags, "-")+1:]
	return tags[strings.LastIndex(tags, ".")+1:]
}

// complete adds the size and the license of w. It copies them if group has the same file, and downloads the wheel
// otherwise. note is a difference that a person must check, or empty.
func (s *setup) complete(ctx context.Context, w *wheel, group []wheel) (note string, err error) {
	i := slices.IndexFunc(group, func(old wheel) bool { return old.Package == w.Package })
	if i >= 0 {
		if group[i].SHA256 == w.SHA256 {
			*w = group[i]
			return "", nil
		}
		w.License = group[i].License
		if i > 0 {
			note = fmt.Sprintf("%s: %s is %s, formerly %s", w.Backend, w.Package, w.Version, group[i].Version)
		}
	} else {
		w.License = cmp.Or(w.License, "unknown")
		note = fmt.Sprintf("%s: %s %s, the newest, is a new package; its license: %s", w.Backend, w.Package, w.Version, w.License)
	}
	file := s.path("downloads", w.File)
	if sum, err := hashFile(file); err != nil || sum != w.SHA256 {
		if file, err = s.pipFile(ctx, *w); err != nil {
			return "", err
		}
	}
	st, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	w.Size = st.Size()
	if file == s.path("downloads", w.File) {
		return note, nil
	}
	return note, s.keep(file, w.File, w.Size, w.SHA256)
}
