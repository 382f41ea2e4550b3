package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata/tokenizer.json has the form of Llama 3's. Hugging Face's tokenizers (version 0.23) trained it on the Gettysburg
// Address and computed testdata/tokens.json. There, digits has the ids with the splits of SmolLM2's tokenizer.
func TestTokens(t *testing.T) {
	var texts []struct {
		Text, Decoded string
		IDs, Digits   []int32
	}
	require.NoError(t, readJSON("testdata/tokens.json", &texts))
	llama, err := loadTokens("testdata")
	require.NoError(t, err)
	digits, err := loadTokens(writeTokenizer(t, change{"pre_tokenizer": change{"type": "Sequence", "pretokenizers": []change{
		{"type": "Digits", "individual_digits": true},
		{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
	}}}))
	require.NoError(t, err)
	for _, want := range texts {
		ids, err := llama.encode(want.Text)
		require.NoError(t, err)
		require.Equal(t, want.IDs, ids, want.Text)
		text, err := llama.decode(ids)
		require.NoError(t, err)
		require.Equal(t, want.Decoded, text)
		ids, err = digits.encode(want.Text)
		require.NoError(t, err)
		require.Equal(t, want.Digits, ids, want.Text)
	}
	text, err := llama.decode([]int32{-1, 435, 512})
	require.NoError(t, err)
	require.Equal(t, "\uFFFDFour\uFFFD", text)
}

// writeTokenizer writes testdata/tokenizer.json with changes to a folder.
func writeTokenizer(t testing.TB, changes change) (dir string) {
	t.Helper()
	dir = t.TempDir()
	data, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	file := filepath.Join(dir, "tokenizer.json")
	require.NoError(t, os.WriteFile(file, data, 0o666))
	rewriteJSON(t, file, changes)
	return dir
}

// Older files write a merge as one string, and a file may lack a post-processor.
func TestTokensOfOtherForms(t *testing.T) {
	var f struct {
		Model map[string]any
	}
	require.NoError(t, readJSON("testdata/tokenizer.json", &f))
	var merges []string
	for _, m := range f.Model["merges"].([]any) {
		pair := m.([]any)
		merges = append(merges, pair[0].(string)+" "+pair[1].(string))
	}
	f.Model["merges"] = merges
	tok, err := loadTokens(writeTokenizer(t, change{"model": f.Model, "post_processor": nil}))
	require.NoError(t, err)
	ids, err := tok.encode("Four score")
	require.NoError(t, err)
	require.Equal(t, []int32{435, 276, 450}, ids)

	template := change{"type": "TemplateProcessing", "single": []change{
		{"SpecialToken": change{"id": "a"}}, {"Sequence": change{"id": "A"}}, {"SpecialToken": change{"id": "b"}},
	}, "special_tokens": change{"a": change{"ids": []int{7, 8}}, "b": change{"ids": []int{9}}}}
	tok, err = loadTokens(writeTokenizer(t, change{"post_processor": template}))
	require.NoError(t, err)
	ids, err = tok.encode("Four score")
	require.NoError(t, err)
	require.Equal(t, []int32{7, 8, 435, 276, 450}, ids)
}

func TestTokenizerErrors(t *testing.T) {
	for want, changes := range map[string]change{
		"model is Unigram with byte_fallback false; it must be BPE without": {"model": change{"type": "Unigram"}},
		"model is BPE with byte_fallback true; it must be BPE without":      {"model": change{"type": "BPE", "byte_fallback": true}},
		`there is a normalizer, {"type":"NFC"}; it must be null`:            {"normalizer": change{"type": "NFC"}},
		"pre_tokenizer is {Type:Metaspace":                                  {"pre_tokenizer": change{"type": "Metaspace"}},
		"pre_tokenizer is {Type: ":                                          {"pre_tokenizer": nil},
		"pre_tokenizer: error parsing regexp":                               {"pre_tokenizer": change{"type": "Split", "behavior": "Isolated", "pattern": change{"Regex": "("}}},
		"post_processor is BertProcessing; it must be ByteLevel":            {"post_processor": change{"type": "BertProcessing"}},
		`post_processor: "x" is not in special_tokens`:                      {"post_processor": change{"type": "TemplateProcessing", "single": []change{{"SpecialToken": change{"id": "x"}}}}},
		"the vocabulary has the id -5; it must be in [0, 2^24)":             {"added_tokens": []change{{"id": -5, "content": "x"}}},
		"tokenizer.json: json: cannot unmarshal":                            {"model": change{"type": "BPE", "merges": []int{1}}},
		"there is no vocabulary":                                            {"model": change{"type": "BPE"}},
	} {
		_, err := loadTokens(writeTokenizer(t, changes))
		require.ErrorContains(t, err, want)
	}
	_, err := loadTokens(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	var m merge
	require.Error(t, json.NewDecoder(strings.NewReader("[1, 2]")).Decode(&m))
}
