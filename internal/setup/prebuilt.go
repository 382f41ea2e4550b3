package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// prebuiltFolder is the folder of an archive with libmlxc and libmlxg: lib, and mlx-c's headers in include.
const prebuiltFolder = "mlxgrad"

// sourcesHash returns a hash of the sources of libmlxc and libmlxg.
func (s *setup) sourcesHash() (string, error) {
	h := sha256.New()
	err := s.hashSources(h)
	return hex.EncodeToString(h.Sum(nil)), err
}

// prebuilt returns the release archive of this platform. It returns nil if the lock file has none, if the archive was
// made from other sources, or if the choice needs a compilation.
func (s *setup) prebuilt() (*prebuiltArchive, error) {
	p, c := s.pair.Prebuilt, s.choice
	if p == nil || c.MLXDir != "" || c.MLXCSource != "" || c.ASan {
		return nil, nil
	}
	hash, err := s.sourcesHash()
	if err != nil || hash != p.Sources {
		return nil, err
	}
	for _, a := range p.Archives {
		if a.OS == runtime.GOOS && a.Arch == runtime.GOARCH {
			return &a, nil
		}
	}
	return nil, nil
}

// fingerprint returns the fingerprint of an installation with the archive's libraries. The archive's hash represents
// the sources.
func (a *prebuiltArchive) fingerprint(c choice) string {
	if a == nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "prebuilt %s %s %s", c.backend(), c.MLX, a.SHA256))
	return hex.EncodeToString(sum[:])
}

// unpackPrebuilt makes the installation in the folder stage from Apple's package and the archive.
func (s *setup) unpackPrebuilt(ctx context.Context, a *prebuiltArchive, m *manifest, stage string) error {
	if _, err := os.Stat(filepath.Join(s.offline, a.File)); s.offline != "" && err != nil {
		return &failure{
			what: fmt.Sprintf("%s lacks %s", s.offline, a.File),
			todo: "download it from " + s.pair.Prebuilt.URL, unreachable: true,
		}
	}
	file, err := s.bring(a.File, a.Size, a.SHA256, func() error { return s.httpDownload(ctx, a) })
	if err != nil {
		return err
	}
	if err := untarGz(file, prebuiltFolder, stage); err != nil {
		return err
	}
	m.MLX, m.MLXC, m.Tested = s.pair.MLX.Version, s.pair.MLXC.Version, s.pair.Tested
	m.Sources[a.File] = a.SHA256
	return s.bringMLX(ctx, m, stage)
}

// httpDownload downloads an archive of a release.
func (s *setup) httpDownload(ctx context.Context, a *prebuiltArchive) error {
	url := s.pair.Prebuilt.URL + "/" + a.File
	tmp := filepath.Join(s.tmp, a.File)
	err := s.watch(fmt.Sprintf("downloading libmlxc and libmlxg (%.1f MB)", float64(a.Size)/1e6), a.Size, func() error {
		return get(ctx, url, tmp, a.Size)
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isDiskFull(err):
		return err
	case err != nil:
		return &failure{
			what: fmt.Sprintf("%s cannot be downloaded (%s)", url, oneLine(err.Error())), todo: noNetwork,
			unreachable: true,
		}
	}
	return s.keep(tmp, a.File, a.Size, a.SHA256)
}

// get downloads a file of the given size.
func get(ctx context.Context, url, file string, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, io.LimitReader(response.Body, size+1)); err != nil {
		return err
	}
	return f.Close()
}
