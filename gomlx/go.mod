module github.com/mlxgrad/mlxgrad/gomlx

go 1.26.0

require (
	github.com/gomlx/gomlx v0.27.3
	github.com/mlxgrad/mlxgrad v0.0.0
	github.com/stretchr/testify v1.12.1
	github.com/x448/float16 v0.8.4
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/exp v0.0.0-20260312153236-7ab1446f8b90 // indirect
	golang.org/x/sys v0.49.0 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)

replace github.com/mlxgrad/mlxgrad => ../
