-- `todoke p2p`.

-- name: add_peer
INSERT INTO cn_relay.gossip_peers (node_id, address) VALUES ($1, $2)
ON CONFLICT (node_id) DO UPDATE SET address = excluded.address;

-- name: count_peers
SELECT count(*) FROM cn_relay.gossip_peers WHERE node_id <> $1;

-- name: remove_peer
DELETE FROM cn_relay.gossip_peers WHERE node_id = $1 RETURNING address;
