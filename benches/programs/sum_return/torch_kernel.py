def run(x):
    return x.sum().item()
