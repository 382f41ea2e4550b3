// Package corpus tests the checker on the Metal kernels of six other repositories, which are read and run unchanged.
// No file of these repositories is part of this one. The environment variable MLXGRAD_CORPUS names a folder with one
// subfolder for each repository:
//
//	go run ./internal/corpus/cmd FOLDER
//	MLXGRAD_CORPUS=FOLDER go test ./internal/corpus -long
//
// TestLaunches compares the outputs of some 220 launches with references in float64, and the findings with those that
// docs/sanitize-bugs.md explains. TestSurvey runs a draft of every kernel and compares the findings with
// testdata/findings.txt. It takes 15 minutes on two idle cores, and half of that if the cache has the compiled kernels, so
// an interrupted run continues where it was. -run TestSurvey/mlx runs one repository.
//
// The first command clones the repositories at the commits of [Repositories]. Without the variable the tests are
// skipped, unless MLXGRAD_REQUIRE lists corpus.
package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// Variable is the environment variable that names the folder of the repositories.
const Variable = "MLXGRAD_CORPUS"

// A Repository is a repository with Metal kernels, at one commit.
type Repository struct {
	Folder  string // below the folder of MLXGRAD_CORPUS
	Name    string // on GitHub
	Commit  string
	License string
}

// Repositories are the repositories of the tests.
var Repositories = []Repository{
	{"candle", "huggingface/candle", "2a13b0f3ff62f7e67013597f2996f764c5735e21", "MIT or Apache-2.0"},
	{"ggml", "ggml-org/ggml", "d99724f2b141fed9e1a9f402213506c081433465", "MIT"},
	{"lambdaworks", "lambdaclass/lambdaworks", "21281c3f1cdb6a7f43e7678d8b12c14c1f7eff0e", "Apache-2.0"},
	{"mistralrs", "EricLBuehler/mistral.rs", "9e922623f24b32d41f3892b74f0eed18707f4e6c", "MIT"},
	{"mlx", "ml-explore/mlx", "846d176227a0ac13d2667e58d2bb68b322109ab0", "MIT"},
	{"tract", "sonos/tract", "38b383fbd8ee33873fd0b58fcc23480011554c0c", "MIT or Apache-2.0"},
}

// Folder returns the folder that MLXGRAD_CORPUS names. It skips the test if the variable is not set, and fails it if
// the folder lacks a repository.
func Folder(t testing.TB) string {
	t.Helper()
	folder := os.Getenv(Variable)
	if folder == "" {
		skip.Missing(t, skip.Corpus, Variable+" is not set")
	}
	for _, r := range Repositories {
		if _, err := os.Stat(filepath.Join(folder, r.Folder)); err != nil {
			t.Fatal(fmt.Errorf("%s is %s: %w", Variable, folder, err))
		}
	}
	return folder
}
