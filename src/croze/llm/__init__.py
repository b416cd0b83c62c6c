"""Access to models: wires, retries, catalogue, scripted model and recorder."""
