def run(a, x, y):
    y.add_(x, alpha=a)
