module github.com/mlxgrad/mlxgrad/examples/llama

go 1.26.0

require (
	github.com/dlclark/regexp2 v1.11.4
	github.com/gomlx/go-huggingface v0.3.1
	github.com/mlxgrad/mlxgrad v0.0.0
	github.com/ollama/ollama v0.17.4
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/emirpasic/gods/v2 v2.0.0-alpha // indirect
	github.com/gofrs/flock v0.13.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/mlxgrad/mlxgrad => ../..
