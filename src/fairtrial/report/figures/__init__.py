"""Figures as Vega-Lite specifications, and the SVG files made from them."""
