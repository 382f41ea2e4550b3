package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func command(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out))
	return out.String()
}

// The command tunes, continues, and generates with the adapter.
func TestCommand(t *testing.T) {
	dir, adapter := writeModel(t, mlxc.BFloat16, 3, nil), filepath.Join(t.TempDir(), "adapter")
	tune := []string{
		"-model", dir, "-text", textFile, "-adapter", adapter, "-length", "16", "-rate", "0.01",
		"-keys", "self_attn.q_proj,mlp.up_proj,mlp.down_proj", "-prompt", "Four score", "-tokens", "9",
	}
	first := command(t, append(tune, "-steps", "20")...)
	require.Contains(t, first, "94528 frozen parameters in bfloat16, 7168 of the adapter\n")
	require.Contains(t, first, "\nstep 20: loss ")
	second := command(t, append(tune, "-steps", "40")...)
	require.NotContains(t, second, "step 20:")
	require.Contains(t, second, "\nstep 30: loss ")
	t.Log(second)

	losses := regexp.MustCompile(`loss (\S+) on the text for training`).FindAllStringSubmatch(first+second, -1)
	require.Len(t, losses, 4)
	require.Equal(t, losses[0], losses[2], "without an adapter")
	var values []float64
	for _, l := range losses {
		v, err := strconv.ParseFloat(l[1], 64)
		require.NoError(t, err)
		values = append(values, v)
	}
	require.Less(t, values[1], values[0]-0.2)
	require.Less(t, values[3], values[1]-0.1)

	texts := strings.SplitAfter(second, "on the rest\n")
	require.Len(t, texts, 3)
	plain, _, _ := strings.Cut(texts[1], "step 30")
	require.Equal(t, plain, command(t, "-model", dir, "-prompt", "Four score", "-tokens", "9"))
	require.Equal(t, texts[2], command(t, "-model", dir, "-adapter", adapter, "-prompt", "Four score", "-tokens", "9"))
	require.NotEqual(t, plain, texts[2])
}

func TestCommandErrors(t *testing.T) {
	dir := writeModel(t, mlxc.Float32, 1, nil)
	plain := writeModel(t, mlxc.Float32, 1, nil)
	rewriteJSON(t, filepath.Join(plain, "tokenizer.json"), change{"post_processor": nil})
	short := filepath.Join(t.TempDir(), "short.txt")
	require.NoError(t, os.WriteFile(short, []byte("Four score"), 0o666))
	for want, args := range map[string][]string{
		"name the model by -model or -hub":                                        {},
		`unexpected argument "x": the command takes only flags`:                   {"-model", dir, "x"},
		"-text needs -adapter, the folder to write":                               {"-model", dir, "-text", textFile},
		"-steps, -batch, -length and -save-every are 100, 0, 128 and 100; they":   {"-model", dir, "-batch", "0"},
		"-tokens and -temperature are 50 and -1; they must not be negative":       {"-model", dir, "-temperature", "-1"},
		`invalid value "int8" for flag -dtype: it must be float32, float16 or`:    {"-model", dir, "-dtype", "int8"},
		"short.txt has 4 tokens; it must have more than 1280, ten passages of -l": {"-model", dir, "-text", short, "-adapter", t.TempDir()},
		"-prompt is empty, and the model has no token that begins a text":         {"-model", plain},
		"tokenizer.json: no such file or directory":                               {"-model", t.TempDir()},
		"adapter_config.json: no such file or directory":                          {"-model", dir, "-adapter", t.TempDir()},
	} {
		require.ErrorContains(t, run(t.Context(), args, &bytes.Buffer{}), want)
	}
}

// A server stands for the hub: -hub downloads the files that the program needs, once.
func TestHub(t *testing.T) {
	dir := writeModel(t, mlxc.Float32, 2, nil)
	var mutex sync.Mutex
	var downloads []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/models/owner/name/revision/main" {
			_, _ = w.Write([]byte(`{"sha": "5ca1ab1e", "siblings": [{"rfilename": "README.md"}, {"rfilename": "config.json"},
				{"rfilename": "tokenizer.json"}, {"rfilename": "model.safetensors.index.json"}, {"rfilename": "original/model.safetensors"},
				{"rfilename": "model-00001-of-00002.safetensors"}, {"rfilename": "model-00002-of-00002.safetensors"}]}`))
			return
		}
		file, ok := strings.CutPrefix(r.URL.Path, "/owner/name/resolve/5ca1ab1e/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodGet {
			mutex.Lock()
			downloads = append(downloads, file)
			mutex.Unlock()
		}
		w.Header().Set("ETag", `"`+file+`"`)
		http.ServeFile(w, r, filepath.Join(dir, file))
	}))
	defer server.Close()
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := command(t, "-model", dir, "-tokens", "5")
	for range 2 {
		require.Equal(t, want, command(t, "-hub", "owner/name", "-tokens", "5"))
	}
	require.ElementsMatch(t, []string{
		"config.json", "tokenizer.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
		"model-00002-of-00002.safetensors",
	}, downloads)
	require.ErrorContains(t, run(t.Context(), []string{"-hub", "owner/other"}, &bytes.Buffer{}), "-hub owner/other: ")
}
