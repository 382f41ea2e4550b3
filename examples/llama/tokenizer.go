package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"
	"github.com/ollama/ollama/tokenizer"
)

// tokens converts text to token ids and back, by byte-level BPE as in Llama 3.
type tokens struct {
	bpe     tokenizer.BytePairEncoding
	size    int     // of the vocabulary
	special []int32 // ids that decode leaves out
	prefix  []int32 // ids before each text
}

// tokenizerFile holds the fields of tokenizer.json that this program uses.
type tokenizerFile struct {
	Model struct {
		Type         string           `json:"type"`
		ByteFallback bool             `json:"byte_fallback"`
		Vocab        map[string]int32 `json:"vocab"`
		Merges       []merge          `json:"merges"`
	} `json:"model"`
	AddedTokens []struct {
		ID      int32  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  preTokenizer    `json:"pre_tokenizer"`
	PostProcessor postProcessor   `json:"post_processor"`
}

// merge is a pair of tokens, which in JSON is one string with a space or a list of two.
type merge string

func (m *merge) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(m)) == nil {
		return nil
	}
	var pair [2]string
	err := json.Unmarshal(data, &pair)
	*m = merge(pair[0] + " " + pair[1])
	return err
}

type preTokenizer struct {
	Type             string         `json:"type"`
	PreTokenizers    []preTokenizer `json:"pretokenizers"`
	Pattern          struct{ Regex string }
	Behavior         string `json:"behavior"`
	Invert           bool   `json:"invert"`
	IndividualDigits bool   `json:"individual_digits"`
	AddPrefixSpace   bool   `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"`
}

type postProcessor struct {
	Type       string          `json:"type"`
	Processors []postProcessor `json:"processors"`
	Single     []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		}
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// loadTokens reads tokenizer.json of a model's folder.
func loadTokens(dir string) (*tokens, error) {
	file := filepath.Join(dir, "tokenizer.json")
	var f tokenizerFile
	if err := readJSON(file, &f); err != nil {
		return nil, err
	}
	t, err := f.tokens()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func (f tokenizerFile) tokens() (*tokens, error) {
	switch {
	case f.Model.Type != "BPE" || f.Model.ByteFallback:
		return nil, fmt.Errorf("model is %s with byte_fallback %v; it must be BPE without", f.Model.Type, f.Model.ByteFallback)
	case f.Normalizer != nil && string(f.Normalizer) != "null":
		return nil, fmt.Errorf("there is a normalizer, %s; it must be null", f.Normalizer)
	}
	patterns, err := f.PreTokenizer.patterns()
	if err != nil {
		return nil, err
	}
	for _, p := range patterns {
		if _, err := regexp2.Compile(p, regexp2.RE2); err != nil {
			return nil, fmt.Errorf("pre_tokenizer: %w", err)
		}
	}
	if len(f.Model.Vocab) == 0 {
		return nil, errors.New("there is no vocabulary")
	}
	t := &tokens{}
	kinds := map[string]int32{}
	for _, a := range f.AddedTokens {
		f.Model.Vocab[a.Content] = a.ID
		kinds[a.Content] = tokenizer.TOKEN_TYPE_USER_DEFINED
		if a.Special {
			kinds[a.Content] = tokenizer.TOKEN_TYPE_CONTROL
			t.special = append(t.special, a.ID)
		}
	}
	for _, id := range f.Model.Vocab {
		if id < 0 || id >= 1<<24 {
			return nil, fmt.Errorf("the vocabulary has the id %d; it must be in [0, 2^24)", id)
		}
		t.size = max(t.size, int(id)+1)
	}
	v := &tokenizer.Vocabulary{Values: make([]string, t.size), Types: make([]int32, t.size)}
	for token, id := range f.Model.Vocab {
		v.Values[id], v.Types[id] = token, tokenizer.TOKEN_TYPE_NORMAL
		if kind, ok := kinds[token]; ok {
			v.Types[id] = kind
		}
	}
	for _, m := range f.Model.Merges {
		v.Merges = append(v.Merges, string(m))
	}
	t.bpe = tokenizer.NewBytePairEncoding(v, patterns...)
	t.prefix, err = f.PostProcessor.prefix()
	return t, err
}

// patterns returns regular expressions that split a text one after the other.
func (p preTokenizer) patterns() (all []string, err error) {
	switch {
	case p.Type == "Sequence":
		for _, q := range p.PreTokenizers {
			one, err := q.patterns()
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	case p.Type == "Split" && p.Pattern.Regex != "" && p.Behavior == "Isolated" && !p.Invert:
		return []string{p.Pattern.Regex}, nil
	case p.Type == "Digits" && p.IndividualDigits:
		return []string{`\p{N}|\P{N}+`}, nil
	case p.Type == "ByteLevel" && !p.AddPrefixSpace && p.UseRegex != nil && !*p.UseRegex:
		return nil, nil
	case p.Type == "ByteLevel" && !p.AddPrefixSpace:
		return []string{`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`}, nil
	}
	return nil, fmt.Errorf("pre_tokenizer is %+v; it must be a Sequence of ByteLevel without add_prefix_space, Digits with "+
		"individual_digits, and Split with an isolated Regex", p)
}

// prefix returns the ids before a text. Ids after it would end a prompt, so this program leaves them out.
func (p postProcessor) prefix() (ids []int32, err error) {
	switch p.Type {
	case "", "ByteLevel": // ByteLevel changes only the offsets of tokens
		return nil, nil
	case "Sequence":
		for _, q := range p.Processors {
			more, err := q.prefix()
			if err != nil {
				return nil, err
			}
			ids = append(ids, more...)
		}
		return ids, nil
	case "TemplateProcessing":
		for _, part := range p.Single {
			if part.SpecialToken == nil { // the text
				break
			}
			token, ok := p.SpecialTokens[part.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("post_processor: %q is not in special_tokens", part.SpecialToken.ID)
			}
			ids = append(ids, token.IDs...)
		}
		return ids, nil
	}
	return nil, fmt.Errorf("post_processor is %s; it must be ByteLevel, TemplateProcessing or a Sequence of them", p.Type)
}

// encode returns the ids of a text, with the special tokens of the model before it.
func (t *tokens) encode(text string) ([]int32, error) {
	ids, err := t.bpe.Encode(text, false)
	return slices.Concat(t.prefix, ids), err
}

// decode returns the text of ids without special tokens.
func (t *tokens) decode(ids []int32) (string, error) {
	var text strings.Builder
	for _, id := range ids {
		switch {
		case id < 0 || int(id) >= t.size: // a model may have more rows than tokens
			text.WriteString("\uFFFD")
		case !slices.Contains(t.special, id):
			part, err := t.bpe.Decode([]int32{id})
			if err != nil {
				return "", err
			}
			text.WriteString(part)
		}
	}
	return text.String(), nil
}
