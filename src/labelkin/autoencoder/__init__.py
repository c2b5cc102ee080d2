"""The label autoencoder: label sets in a small latent space, and back."""
