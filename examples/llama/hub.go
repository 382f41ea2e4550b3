package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/gomlx/go-huggingface/hub"
)

// download brings a model from the Hugging Face hub into the cache of its Python library and returns the folder. The
// environment variable HF_TOKEN has the token for models that need one, and HF_ENDPOINT another server.
func download(name string) (dir string, err error) {
	repo := hub.New(name).WithAuth(os.Getenv("HF_TOKEN"))
	if err := repo.DownloadInfo(false); err != nil {
		return "", fmt.Errorf("-hub %s: %w", name, err)
	}
	wanted := []string{"config.json", "generation_config.json", "tokenizer.json", "model.safetensors.index.json"}
	var files []string
	for file, err := range repo.IterFileNames() {
		if err != nil {
			return "", fmt.Errorf("-hub %s: %w", name, err)
		}
		if inRoot := path.Base(file) == file; inRoot && (slices.Contains(wanted, file) || path.Ext(file) == ".safetensors") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return "", fmt.Errorf("-hub %s: the model has no config.json and no safetensors file", name)
	}
	paths, err := repo.DownloadFiles(files...)
	if err != nil {
		return "", fmt.Errorf("-hub %s: %w", name, err)
	}
	return filepath.Dir(paths[0]), nil
}
