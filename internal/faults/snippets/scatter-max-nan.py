import mlx.core as mx

x = mx.array([float("nan"), 1])
for got in (x.at[mx.array([0, 1])].maximum(2), x.at[mx.array([0, 1])].minimum(2)):
    assert mx.isnan(got).tolist() == [True, False], got
