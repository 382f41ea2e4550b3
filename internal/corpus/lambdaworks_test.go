package corpus

func lambdaworksCases() []launchCase { return nil }
