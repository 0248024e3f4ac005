"""Gymnasium environments and generative models."""
