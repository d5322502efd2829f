"""tradeoff"""
